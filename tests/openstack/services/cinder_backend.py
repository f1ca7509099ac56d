"""A backend of Cinder without disks: each volume is at the same iSCSI portal, and each connection has a CHAP secret."""
from cinder.volume import driver


class Driver(driver.VolumeDriver):
    VERSION = '1.0.0'

    def check_for_setup_error(self):
        pass

    def get_volume_stats(self, refresh=False):
        pool = {'pool_name': 'pool', 'total_capacity_gb': 1000, 'free_capacity_gb': 1000, 'reserved_percentage': 0}
        return {'volume_backend_name': 'disks', 'vendor_name': 'none', 'driver_version': self.VERSION,
                'storage_protocol': 'iSCSI', 'pools': [pool]}

    def _nothing(self, *args, **kwargs):
        pass

    create_volume = delete_volume = ensure_export = create_export = remove_export = terminate_connection = _nothing

    def initialize_connection(self, volume, connector):
        return {'driver_volume_type': 'iscsi', 'data': {
            'target_iqn': 'iqn.2026-01.org.example:' + volume.id, 'target_portal': '192.0.2.5:3260', 'target_lun': 1,
            'auth_method': 'CHAP', 'auth_username': connector['host'], 'auth_password': 'chap-secret'}}
